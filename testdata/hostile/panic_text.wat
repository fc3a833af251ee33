;; tries: to print a panic like a Go program, and to exit with code 2
;; at: invoke
;; wants: panic boom | with more
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\bc\02\00\00\3a\00\00\00") ;; 58 bytes at 700
  (data (i32.const 700) "panic: boom\0awith more\0a\0agoroutine 1 [running]:\0a/secret/path.go\0a")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (drop (call $fd_write (i32.const 2) (i32.const 600) (i32.const 1) (i32.const 640)))
    (call $proc_exit (i32.const 2))
    (unreachable)))
