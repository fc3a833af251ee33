module github.com/weftrun/weft/testdata/plugins/workload

go 1.24

require github.com/weftrun/weft/sdk-guest/go v0.0.0

replace github.com/weftrun/weft/sdk-guest/go => ../../../sdk-guest/go
