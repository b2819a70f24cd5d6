module interop/go_common

go 1.24
