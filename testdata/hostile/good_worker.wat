;; tries: nothing; it computes for sixty turns of a core, without a call of the host's, and answers
;; at: invoke
;; wants: ok
;; limits: fuel=200000000
;; runs: 1
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\82iStopEvent\a0") ;; [0, ["StopEvent", {}]]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local i32 i32)
    (loop $work
      (local.set 2 (i32.add (i32.mul (local.get 2) (i32.const 31)) (i32.load (i32.and (local.get 2) (i32.const 0xfffc)))))
      (br_if $work (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 10000000))))
    (call $output (i32.const 512) (i32.const 14))
    (i32.const 0)))
