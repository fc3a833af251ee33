;; tries: to grow its table until that is refused, and to call through its last entry
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
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again (br_if $again (i32.ne (table.grow 0 (ref.func $one) (i32.const 1000)) (i32.const -1))))
    (loop $again (br_if $again (i32.ne (table.grow 0 (ref.func $one) (i32.const 1)) (i32.const -1))))
    (if (i32.ne (table.size 0) (i32.const 65536)) (then (unreachable)))
    (call_indirect (type $plain) (i32.const 65535))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
