;; tries: to fill a large table in weft_describe, which no image holds
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (type $plain (func))
  (table 1 funcref)
  (elem declare func $one)
  (func $one)
  (func (export "weft_describe")
    (drop (table.grow 0 (ref.func $one) (i32.const 59999)))
    (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (table.size 0) (i32.const 60000)) (then (unreachable)))
    (call_indirect (type $plain) (i32.const 59999))
    (table.fill 0 (i32.const 0) (ref.null func) (i32.const 60000))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
