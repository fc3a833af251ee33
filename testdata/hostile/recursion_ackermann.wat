;; tries: to run for ever without a loop, by calls that nest and return in no order
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $ackermann (param i32 i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.add (local.get 1) (i32.const 1)))))
    (if (i32.eqz (local.get 1)) (then (return (call $ackermann (i32.sub (local.get 0) (i32.const 1)) (i32.const 1)))))
    (call $ackermann (i32.sub (local.get 0) (i32.const 1)) (call $ackermann (local.get 0) (i32.sub (local.get 1) (i32.const 1)))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $ackermann (i32.const 4) (i32.const 2))))
