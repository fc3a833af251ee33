;; tries: to run for ever in memory.init
;; at: invoke
;; wants: fuel_exhausted more than 20000000 units of fuel (limit fuel)
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data $text "sixteen letters!sixteen letters!sixteen letters!sixteen letters!")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again (memory.init $text (i32.const 1024) (i32.const 0) (i32.and (local.get 0) (i32.const 63))) (br $again))
    (unreachable)))
