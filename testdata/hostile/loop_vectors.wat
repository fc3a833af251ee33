;; tries: to run for ever in vector instructions
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local v128)
    (loop $again
      (local.set 1 (i8x16.swizzle (i32x4.mul (local.get 1) (v128.const i32x4 3 5 7 9))
        (i8x16.shuffle 1 0 3 2 5 4 7 6 9 8 11 10 13 12 15 14 (local.get 1) (local.get 1))))
      (v128.store (i32.const 1024) (local.get 1))
      (br $again))

    (unreachable)))
