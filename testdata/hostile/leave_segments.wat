;; tries: to drop its segments and trap; the next invocation traps in another way if they are gone
;; at: invoke
;; wants: trap unreachable
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data $text "text")
  (table 2 funcref)
  (elem $some func $mark)
  (func $mark)
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.const 0) (then (return (i32.const 7))))

    (memory.init $text (i32.const 2000) (i32.const 0) (i32.const 4))
    (table.init 0 $some (i32.const 0) (i32.const 0) (i32.const 1))
    (data.drop $text)
    (elem.drop $some)
    (unreachable)))
