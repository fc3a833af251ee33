;; tries: to leave functions in every way there is, so that what was counted for their frames gets lost
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func $nothing)
  (func $deep (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
    (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
  (func $leave (param i32) (result i32)
    (call $nothing)
    (block $a (block $b (block $c (block $d
      (br_table $a $b $c $d $a $b $c $d (local.get 0)))
      (return (i32.const 2)))
      (br 2 (i32.const 3)))
      (br_if 1 (i32.const 4) (i32.const 1))
      (return))
    (loop $again (result i32)
      (br_if $again (i32.eqz (local.tee 0 (i32.const 1))))
      (if (result i32) (local.get 0) (then (return (i32.const 5))) (else (br 2 (i32.const 6))))))
  (func $many (param i32) (result i32 i64)
    (call $nothing)
    (if (i32.and (local.get 0) (i32.const 1)) (then (return (i32.const 1) (i64.const 2))))
    (i32.const 3) (i64.const 4)
    (br_if 0 (i32.and (local.get 0) (i32.const 2)))
    (br_table 0 0 0 (local.get 0)))
  (func $outer
    (call $nothing)
    (block $inner (br_if 1 (i32.const 1)) (br $inner)))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local i32)
    (loop $again
      (drop (call $leave (i32.and (local.get 1) (i32.const 7))))
      (drop (call $many (local.get 1)) (drop))
      (call $outer)
      (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 30000))))
    (if (i32.ne (call $deep (i32.const 2000)) (i32.const 2000)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
