;; tries: to grow, mark what it got, and trap; the next invocation returns 7 if it has grown or finds a mark
;; at: invoke
;; wants: trap unreachable
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.or (i32.ne (memory.size) (i32.const 1)) (i32.or (i32.ne (memory.grow (i32.const 20)) (i32.const 1))
      (i32.load (i32.const 1000000)))) (then (return (i32.const 7))))
    (memory.fill (i32.const 65536) (i32.const 255) (i32.const 1310720))
    (unreachable)))
