module github.com/weftrun/weft/plugins/review

go 1.26.0

require (
	github.com/weftrun/weft/sdk-guest/go v0.0.0
	github.com/weftrun/weft/sdk-guest/go/wefttest v0.0.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/weftrun/weft v0.0.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)

replace (
	github.com/weftrun/weft => ../..
	github.com/weftrun/weft/sdk-guest/go => ../../sdk-guest/go
	github.com/weftrun/weft/sdk-guest/go/wefttest => ../../sdk-guest/go/wefttest
)
