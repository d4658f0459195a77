-- What failed, by the time of its last change: people look at it and send it again. Only a message that fails costs a write.
create index concurrently if not exists {{failed_index}} on {{table}} (actualizado_en, id)
  where estado in ('fallido', 'descartado');
