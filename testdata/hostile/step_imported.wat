;; tries: to give the host one of its own functions as weft_step
;; at: invoke
;; wants: invalid_output weft_step returned without calling output
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (export "weft_step" (func $fd_close)))
