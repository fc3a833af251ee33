;; tries: to wait for 2^32-1 things, for none, and for things that lie behind its memory
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 600)) (i32.const 28)) (then
      (unreachable)))
    (if (i32.ne (call $poll_oneoff (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 600)) (i32.const 28)) (then
      (unreachable)))
    (if (i32.ne (call $poll_oneoff (i32.const 65500) (i32.const 0) (i32.const 1) (i32.const 600)) (i32.const 21))
      (then (unreachable)))
    (if (i32.ne (call $poll_oneoff (i32.const -48) (i32.const 0) (i32.const 1) (i32.const 600)) (i32.const 21)) (then
      (unreachable)))
    (if (i32.ne (call $poll_oneoff (i32.const 1024) (i32.const 65530) (i32.const 1) (i32.const 600)) (i32.const 21))
      (then (unreachable)))
    (if (i32.ne (call $poll_oneoff (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 65533)) (i32.const 21))
      (then (unreachable)))
    ;; the events over the subscriptions
    (if (i32.ne (call $poll_oneoff (i32.const 1024) (i32.const 1024) (i32.const 1000) (i32.const 1024)) (i32.const 0))
      (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
