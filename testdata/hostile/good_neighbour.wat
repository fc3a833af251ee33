;; tries: nothing; it computes for some slices, calls the host now and then, and answers
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "weft:v1" "state_get" (func $state_get (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\81\60")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local i32 i32 i32)
    (loop $round
      (local.set 2 (i32.const 0))
      (loop $work
        (local.set 3 (i32.add (i32.mul (local.get 3) (i32.const 31)) (i32.load (i32.and (local.get 3) (i32.const 0xfffc)))))
        (br_if $work (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1))) (i32.const 20000))))
      (drop (call $state_get (i32.const 600) (i32.const 2)))
      (br_if $round (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 5))))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
