;; tries: to run for ever in loads that each depend on the one before, all over its memory
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 128)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again
      (local.set 0 (i32.and (i32.load (i32.and (i32.add (i32.mul (local.get 0) (i32.const 1664525))
        (i32.const 1013904223)) (i32.const 0x7ffffc))) (i32.const -1)))
      (i32.store (i32.and (i32.mul (local.get 0) (i32.const 22695477)) (i32.const 0x7ffffc)) (i32.add (local.get 0)
        (i32.const 12345)))
      (br $again))

    (unreachable)))
