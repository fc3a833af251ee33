;; tries: to sleep for ever: each poll_oneoff moves the virtual clock by 1 s
;; at: invoke
;; wants: limit_exceeded poll_oneoff was called more than 100000 times
;; limits: fuel=100000000
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 624) "\00\ca\9a\3b") ;; 1e9 ns, relative
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again
      (drop (call $poll_oneoff (i32.const 600) (i32.const 700) (i32.const 1) (i32.const 800)))
      (br $again))
    (unreachable)))
