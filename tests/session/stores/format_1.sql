PRAGMA application_id = 1397052243;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE calls (
    session INTEGER NOT NULL,
    key INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (session, key, version)
) WITHOUT ROWID;
INSERT INTO "calls" VALUES(3037748495871740951,-5299317790040051060,2);
INSERT INTO "calls" VALUES(3037748495871740951,-4128959377578331469,2);
INSERT INTO "calls" VALUES(3037748495871740951,1533963672983828407,1);
INSERT INTO "calls" VALUES(3037748495871740951,2308248254618893483,1);
INSERT INTO "calls" VALUES(4212671068224807708,-5299317790040051060,2);
INSERT INTO "calls" VALUES(4212671068224807708,-4232771579476390169,5);
INSERT INTO "calls" VALUES(4212671068224807708,-4128959377578331469,2);
INSERT INTO "calls" VALUES(4212671068224807708,-1760440515732860291,3);
INSERT INTO "calls" VALUES(4212671068224807708,1533963672983828407,1);
INSERT INTO "calls" VALUES(4212671068224807708,1533963672983828407,5);
INSERT INTO "calls" VALUES(4212671068224807708,2308248254618893483,1);
INSERT INTO "calls" VALUES(4212671068224807708,2375426062705305993,3);
CREATE TABLE changes (
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    hash BLOB NOT NULL,
    rewound_to INTEGER,
    PRIMARY KEY (session, version)
) WITHOUT ROWID;
INSERT INTO "changes" VALUES(3037748495871740951,1,'{"at":"2026-11-23T17:59:28.099646","slices":["planning.model:Plan"],"parts":[{"!":"session.events:ToolInvoked","event_id":"b6e5410d-5658-474a-ab91-affa3249c7db","created_at":"2026-11-23T17:59:28.099605+00:00","call_id":"call_1","actor":"agent","name":"planning_setup_plan","params":{"!":"planning.commands:SetupPlan","objective":"Fix the login","initial_steps":[{"title":"Reproduce it"},{"title":"Fix it"}]},"result":{"!":"planning.tools.result:ToolResult","success":true,"message":"Plan set: S001 to S002. Next: S001 Reproduce it","elapsed":0.000872345000061614},"value":{"!":"planning.commands:SetupPlan","objective":"Fix the login","initial_steps":[{"title":"Reproduce it"},{"title":"Fix it"}]},"fingerprint":"1uv-Qxyw_pcClcng"}]}',X'5A5CF38F6DDE68799161028FEE916FBB',NULL);
INSERT INTO "changes" VALUES(3037748495871740951,2,'{"at":"2026-11-23T17:59:28.106369","slices":["planning.model:Plan"],"parts":[{"!":"session.events:ToolInvoked","event_id":"58139ed6-9485-4b36-abd4-10ee8cf32614","created_at":"2026-11-23T17:59:28.106337+00:00","call_id":"call_2","actor":"agent","name":"planning_mark_step","result":{"!":"planning.tools.result:ToolResult","success":true,"message":"S001 done. Next: S002 Fix it","elapsed":0.004486658000132593},"value":{"!":"planning.commands:MarkStep","step_id":"S001","status":"done"},"fingerprint":"hIiKMPcxRtE_sIDP"}]}',X'8F85F6B8D57DBA09DFEC556451E593B9',NULL);
INSERT INTO "changes" VALUES(4212671068224807708,1,'{"at":"2026-11-23T17:59:28.099646","slices":["planning.model:Plan"],"parts":[{"!":"session.events:ToolInvoked","event_id":"b6e5410d-5658-474a-ab91-affa3249c7db","created_at":"2026-11-23T17:59:28.099605+00:00","call_id":"call_1","actor":"agent","name":"planning_setup_plan","params":{"!":"planning.commands:SetupPlan","objective":"Fix the login","initial_steps":[{"title":"Reproduce it"},{"title":"Fix it"}]},"result":{"!":"planning.tools.result:ToolResult","success":true,"message":"Plan set: S001 to S002. Next: S001 Reproduce it","elapsed":0.000872345000061614},"value":{"!":"planning.commands:SetupPlan","objective":"Fix the login","initial_steps":[{"title":"Reproduce it"},{"title":"Fix it"}]},"fingerprint":"1uv-Qxyw_pcClcng"}]}',X'5A5CF38F6DDE68799161028FEE916FBB',NULL);
INSERT INTO "changes" VALUES(4212671068224807708,2,'{"at":"2026-11-23T17:59:28.106369","slices":["planning.model:Plan"],"parts":[{"!":"session.events:ToolInvoked","event_id":"58139ed6-9485-4b36-abd4-10ee8cf32614","created_at":"2026-11-23T17:59:28.106337+00:00","call_id":"call_2","actor":"agent","name":"planning_mark_step","result":{"!":"planning.tools.result:ToolResult","success":true,"message":"S001 done. Next: S002 Fix it","elapsed":0.004486658000132593},"value":{"!":"planning.commands:MarkStep","step_id":"S001","status":"done"},"fingerprint":"hIiKMPcxRtE_sIDP"}]}',X'8F85F6B8D57DBA09DFEC556451E593B9',NULL);
INSERT INTO "changes" VALUES(4212671068224807708,3,'{"at":"2026-11-23T17:59:28.108073","slices":["planning.model:Plan"],"parts":[{"!":"session.events:ToolInvoked","event_id":"97d58e1b-1ff5-4ebf-af30-0fbfe0a97d34","created_at":"2026-11-23T17:59:28.108057+00:00","call_id":"call_3","actor":"agent","name":"planning_clear_plan","result":{"!":"planning.tools.result:ToolResult","success":true,"message":"Plan abandoned.","elapsed":0.00022121799975138856},"value":{"!":"planning.commands:ClearPlan"},"fingerprint":"hJgRZMr7Hqm3DLaM"}]}',X'B6D7CE3BD455AB3A8FAF749A89A76270',NULL);
INSERT INTO "changes" VALUES(4212671068224807708,4,'{"at":"2026-11-23T17:59:28.108688","slices":["planning.model:Plan"],"id":"7fc83c9529ba","parts":[{"!":"rewound","version":2}]}',X'09BBB6FF7F137ADF45453F7AC7CBF3D4',2);
INSERT INTO "changes" VALUES(4212671068224807708,5,'{"at":"2026-11-23T17:59:28.109583","parts":[{"!":"session.events:ToolInvoked","event_id":"5e5bb3fc-4711-4d81-8c89-962d0231e1f0","created_at":"2026-11-23T17:59:28.109512+00:00","call_id":"call_1","actor":"agent","name":"send","params":{"to":"Ann"},"result":{"!":"planning.tools.result:ToolResult","success":true,"message":"Sent to Ann","elapsed":0.0005055000001448207},"is_id_reused":true,"fingerprint":"Z_mlrQoNHAPDyHEl"}]}',X'5F88587029649EF6F4AD286B3C9F5544',NULL);
INSERT INTO "changes" VALUES(4212671068224807708,6,'{"at":"2026-11-23T17:59:28.114480","parts":[{"!":"session.events:ToolFailed","event_id":"6d6d8102-d3b3-4a64-83b5-2ce083f35d5c","created_at":"2026-11-23T17:59:28.114332+00:00","call_id":"call_4","actor":"agent","name":"planning_mark_step","result":{"!":"planning.tools.result:ToolResult","success":false,"message":"Refused, nothing changed. step_id: the plan has no step S009; its steps are S001 to S002","error":"step_id: the plan has no step S009; its steps are S001 to S002","user_message":"step_id: the plan has no step S009; its steps are S001 to S002","elapsed":0.004445796999789309,"code":{"!":"planning.tools.errors:ErrorKind","is":"parameter"},"cause":"step_id: the plan has no step S009; its steps are S001 to S002"}}]}',X'BFB90F1464A656D48C8BBA9A3F1A7CB6',NULL);
CREATE TABLE checkpoints (
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    checked BLOB NOT NULL,
    PRIMARY KEY (session, version)
) WITHOUT ROWID;
INSERT INTO "checkpoints" VALUES(4212671068224807708,4,'{"slices":{"planning.model:Plan":{"at":4,"items":[{"!":"planning.model:Plan","objective":"Fix the login","status":"active","steps":[{"step_id":"S001","title":"Reproduce it","details":null,"status":"done","notes":[]},{"step_id":"S002","title":"Fix it","details":null,"status":"pending","notes":[]}]}]}}}',X'3E41C63B27C61E9AB45B8B17778BC590');
CREATE TABLE claims (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    checked BLOB NOT NULL,
    PRIMARY KEY (id, name)
) WITHOUT ROWID;
INSERT INTO "claims" VALUES('run-7','call call_1 send Z_mlrQoNHAPDyHEl',4,X'90D58719F2DC4F4F2C97ADD5DEF408AA');
INSERT INTO "claims" VALUES('run-7','mailed the report',6,X'08630C88B8A3E2542D103C74392D417A');
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    hash BLOB NOT NULL,
    changed_at TEXT NOT NULL,
    about TEXT NOT NULL,
    tally INTEGER NOT NULL,
    checked BLOB NOT NULL
);
INSERT INTO "sessions" VALUES(3037748495871740951,'fork',2,X'8F85F6B8D57DBA09DFEC556451E593B9','2026-11-23T17:59:28.115384+00:00','{"created_at":"2026-11-23T17:59:28.115384+00:00","tags":{"project":"login"},"forked_from":[["run-7",2]]}',-7824928844300488604,X'6727B1C29F6C52F77FAF9302F0B4E2AB');
INSERT INTO "sessions" VALUES(4212671068224807708,'run-7',6,X'BFB90F1464A656D48C8BBA9A3F1A7CB6','2026-11-23T17:59:28.114480+00:00','{"created_at":"2026-11-23T17:59:27.875071+00:00","tags":{"project":"login"},"forked_from":[]}',-5874825651821510489,X'C14C486693A4AF30B9F907C01840B47C');
CREATE INDEX changes_rewound_to ON changes (session, version, rewound_to)
    WHERE rewound_to IS NOT NULL;
COMMIT;
