module github.com/weftrun/weft/testdata/plugins/remember

go 1.24

require github.com/weftrun/weft/testdata/plugins/kernels v0.0.0

replace github.com/weftrun/weft/testdata/plugins/kernels => ../kernels
