;; tries: to open a file and a socket, and to read the host's arguments
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_accept" (func $sock_accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 5) (i32.const 0) (i64.const -1)
      (i64.const -1) (i32.const 0) (i32.const 600)) (i32.const 52)) (then (unreachable)))
    (if (i32.ne (call $sock_accept (i32.const 3) (i32.const 0) (i32.const 600)) (i32.const 52)) (then (unreachable)))
    (if (i32.ne (call $args_sizes_get (i32.const 600) (i32.const 604)) (i32.const 0)) (then (unreachable)))
    (if (i64.ne (i64.load (i32.const 600)) (i64.const 0)) (then (unreachable)))
    (if (i32.ne (call $args_sizes_get (i32.const 65533) (i32.const 600)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $args_get (i32.const -1) (i32.const -1)) (i32.const 0)) (then (unreachable)))
    (if (i32.ne (call $fd_read (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 600)) (i32.const 8)) (then (unreachable)))
    (if (i32.ne (call $fd_read (i32.const 0) (i32.const -1) (i32.const -1) (i32.const -1)) (i32.const 21)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
