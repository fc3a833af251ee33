;; tries: to run for ever, changing a global of each kind
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (global $a (mut i32) (i32.const 1))
  (global $b (mut i64) (i64.const 1))
  (global $c (mut f32) (f32.const 1))
  (global $d (mut f64) (f64.const 1))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again
      (global.set $a (i32.add (global.get $a) (i32.const 1)))
      (global.set $b (i64.mul (global.get $b) (i64.const 3)))
      (global.set $c (f32.neg (global.get $c)))
      (global.set $d (f64.abs (global.get $d)))
      (br $again))

    (unreachable)))
