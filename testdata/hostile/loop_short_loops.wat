;; tries: to run for ever in calls of a function whose own loop is short
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $short (param i32)
    (loop $down
      (br_if $down (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again (call $short (i32.const 5)) (br $again))
    (unreachable)))
