-- The bytes of modules may be compressed (see record.PackModule). An older release would read
-- such a module as damaged, so the step keeps older releases out.

SELECT 1;
