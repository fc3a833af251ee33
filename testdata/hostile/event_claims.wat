;; tries: an event whose body claims 2^64-1 pairs
;; at: invoke
;; wants: ok
;; host: invalid_output unexpected end of data
;; runs: 1
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\82iStopEvent\bb\ff\ff\ff\ff\ff\ff\ff\ff")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 22))
    (i32.const 0)))
