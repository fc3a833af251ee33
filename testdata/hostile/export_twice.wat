;; tries: to export its memory and its functions under several names
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (export "mem" (memory 0))
  (export "describe" (func $describe))
  (export "step" (func $step))
  (func $describe (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func $step (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
