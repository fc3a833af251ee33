;; tries: an event whose body has a key twice
;; at: invoke
;; wants: ok
;; host: invalid_output duplicate key
;; runs: 1
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\82iStopEvent\a2ax\01ax\02")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 20))
    (i32.const 0)))
