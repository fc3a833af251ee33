;; tries: to hand over a manifest of one byte more than an output may have
;; at: describe
;; wants: describe_limit_exceeded the output has 33554433 bytes, at most 33554432
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 513)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe")
    (call $output (i32.const 0) (i32.const 33554433)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
