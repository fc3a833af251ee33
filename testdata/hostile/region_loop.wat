;; tries: to run for ever with an edit open
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "state_begin" (func $state_begin (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\81\60")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (drop (call $state_begin (i32.const 600) (i32.const 2)))
    (loop $again (br $again))
    (unreachable)))
