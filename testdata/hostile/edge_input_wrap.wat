;; tries: to have the input copied to where its end wraps around
;; at: invoke
;; wants: trap input: 12 bytes at address 4294967288 are out of range
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "input" (func $input (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $input (i32.const -8) (i32.const 0) (local.get 0))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
