;; tries: to find a mark in a global that is a vector; it traps then
;; at: invoke
;; wants: ok
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (global $v (mut v128) (v128.const i64x2 0 5))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i64.ne (i64x2.extract_lane 1 (global.get $v)) (i64.const 5)) (then (unreachable)))
    (global.set $v (i64x2.splat (i64.const 1)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
