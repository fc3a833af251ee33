-- An index of the runs that have ended, for deleting old ones.

CREATE INDEX runs_ended ON runs (tenant, completed, run) WHERE completed > 0;
