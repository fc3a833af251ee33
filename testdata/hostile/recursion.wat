;; tries: to nest calls for ever, without a loop
;; at: invoke
;; wants: limit_exceeded frames of nested calls ... more than 1048576 bytes (limit call_depth)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $deeper (i64.const 1))
    (i32.wrap_i64))
  (func $deeper (param i64) (result i64)
    (i64.add (local.get 0) (call $deeper (i64.add (local.get 0) (i64.const 1))))))
