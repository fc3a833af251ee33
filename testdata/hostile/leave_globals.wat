;; tries: to leave marks in globals by a trap, some of which it exports; the next invocation returns 7 if it finds one
;; at: invoke
;; wants: trap unreachable
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (global $a (export "a") (export "b") (mut i32) (i32.const 5))
  (global $b (mut i64) (i64.const -6))
  (global $c (export "_c") (mut f64) (f64.const 0.5))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.or (i32.ne (global.get $a) (i32.const 5)) (i32.or (i64.ne (global.get $b) (i64.const -6)) (f64.ne
      (global.get $c) (f64.const 0.5)))) (then (return (i32.const 7))))
    (global.set $a (i32.const 1))
    (global.set $b (i64.const 1))
    (global.set $c (f64.const 1))
    (unreachable)))
