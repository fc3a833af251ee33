;; tries: to call a function through the table as one of another type
;; at: invoke
;; wants: trap indirect call type mismatch
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (type $other (func (param i64) (result i64)))
  (table 1 funcref)
  (elem (i32.const 0) $one)
  (func $one)
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (drop (call_indirect (type $other) (i64.const 0) (i32.const 0)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
