module github.com/weftrun/weft/testdata/plugins/puppet

go 1.24
