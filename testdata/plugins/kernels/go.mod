module github.com/weftrun/weft/testdata/plugins/kernels

go 1.24
