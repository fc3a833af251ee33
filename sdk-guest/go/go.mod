module github.com/weftrun/weft/sdk-guest/go

go 1.24
