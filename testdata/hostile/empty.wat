;; tries: nothing; nothing is in it
;; at: upload
;; wants: missing_export weft_describe
;; wants: missing_export weft_step
;; wants: missing_export memory
(module)
