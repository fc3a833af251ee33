;; tries: to count in its start function and in _initialize how often they run
;; at: invoke
;; wants: ok
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (global $starts (mut i32) (i32.const 0))
  (func $begin (global.set $starts (i32.add (global.get $starts) (i32.const 1))))
  (start $begin)
  (func (export "_initialize") (i32.store (i32.const 1000) (i32.add (i32.load (i32.const 1000)) (i32.const 1))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (global.get $starts) (i32.const 1)) (then (unreachable)))
    (if (i32.ne (i32.load (i32.const 1000)) (i32.const 1)) (then (unreachable)))
    (global.set $starts (i32.const 9))
    (i32.store (i32.const 1000) (i32.const 9))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
