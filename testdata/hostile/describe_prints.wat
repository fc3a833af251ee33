;; tries: to print for ever in weft_describe
;; at: describe
;; wants: describe_limit_exceeded more than 1048576 bytes of log
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\00\00\00\00\00\00\01\00")
  (func (export "weft_describe")
    (loop $again (drop (call $fd_write (i32.const 2) (i32.const 600) (i32.const 1) (i32.const 640))) (br $again)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
