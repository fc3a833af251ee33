-- drained: an operator has moved the sessions away from the node. It takes them only if no
-- other node can.
ALTER TABLE nodes ADD COLUMN drained boolean NOT NULL DEFAULT false;
