;; tries: to run weft_step in weft_describe
;; at: describe
;; wants: describe_forbidden_call called weft:v1.state_get
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "state_get" (func $state_get (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe")
    (drop (call $step (i32.const 0))))
  (func $step (export "weft_step") (param i32) (result i32)
    (drop (call $state_get (i32.const 600) (i32.const 2)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
