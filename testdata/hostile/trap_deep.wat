;; tries: to trap below some thousand calls, whose frames are looked through for the trace
;; at: invoke
;; wants: trap unreachable in function deeper
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $deeper (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (unreachable)))
    (i32.add (i32.const 1) (call $deeper (i32.sub (local.get 0) (i32.const 1)))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (drop (call $deeper (i32.const 3000)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
