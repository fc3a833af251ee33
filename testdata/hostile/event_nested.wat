;; tries: an event whose body is a million arrays, each inside of the one before
;; at: invoke
;; wants: ok
;; host: invalid_output nested too deep
;; runs: 1
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 17)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\82iStopEvent\a1ax")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (memory.fill (i32.const 528) (i32.const 0x81) (i32.const 1000000))
    (call $output (i32.const 512) (i32.const 1000017))
    (i32.const 0)))
