;; tries: to find that a segment was dropped; it traps then
;; at: invoke
;; wants: ok
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data $once "mark")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (memory.init $once (i32.const 1000) (i32.const 0) (i32.const 4))
    (data.drop $once)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
