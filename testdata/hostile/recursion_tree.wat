;; tries: to run for ever without a loop and without great depth, by calls that each make two
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $tree (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (call $tree (i32.sub (local.get 0) (i32.const 1))) (call $tree (i32.sub (local.get 0) (i32.const 1)))))
      (else (i32.const 1))))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $tree (i32.const 60))))
