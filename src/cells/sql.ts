import { statement } from '../db/db.ts'

/** $1: organization. The cell in which it lives, by the directory. */
export const readPlacementSql = statement(
  'read_placement',
  'select id, cell, moving_to, moves from organizations where id = $1',
)

/** The organizations that are being moved, by the directory. */
export const listMovingSql = statement(
  'list_moving',
  'select id, cell, moving_to, moves from organizations where moving_to is not null order by id',
)

/** $1: organization, $2: its cell, $3: the cell that it moves to. From now on no process caches where it lives. */
export const beginMoveSql = statement(
  'begin_move',
  'update organizations set moving_to = $3 where id = $1 and cell = $2 returning id',
)

/** $1: organization. */
export const cancelMoveSql = statement('cancel_move', 'update organizations set moving_to = null where id = $1')

/** $1: organization, $2: its new cell. */
export const finishMoveSql = statement(
  'finish_move',
  'update organizations set cell = $2, moving_to = null, moves = moves + 1 where id = $1',
)

/** The moves of organizations away from this database that are not cleaned up. */
export const listMovesSql = statement(
  'list_moves',
  'select organization_id, moved_to, has_moved from organization_moves order by organization_id',
)

/** $1: organization. The move of an organization away from this database. */
export const readMoveSql = statement(
  'read_move',
  'select moved_to, move_id, has_moved from organization_moves where organization_id = $1',
)

/** $1: organization. The rows that are copied last, as text, once it is decided that the organization has moved. */
export const readFrozenSql = statement(
  'read_frozen',
  `select m.moved_to, h::text as head, array(select f::text from followers f where f.organization_id = $1) as followers
   from organization_moves m join change_heads h on h.organization_id = $1
   where m.organization_id = $1 and m.has_moved and h.moved_to is null`,
)

/** $1: organization, $2: its cell, $3: its moves so far. Locks its row in the directory. Returns no row if it has moved since. */
export const lockDirectoryRowSql = statement(
  'lock_directory_row',
  `select key, created_at::text as created_at from organizations where id = $1 and cell = $2 and moves = $3 for update`,
)

/** $1: id, $2: key, $3: time of creation, $4: cell. The first cell has the row already. */
export const insertMovedSql = statement(
  'insert_moved',
  `insert into organizations (id, key, created_at, cell) overriding system value values ($1, $2, $3, $4)
   on conflict do nothing`,
)

/** $1: organization, $2: the row as text. Returns no row if the organization is here already. */
export const insertMovedHeadSql = statement(
  'insert_moved_head',
  `insert into change_heads select r.* from unnest($2::change_heads[]) r where r.organization_id = $1
   on conflict do nothing returning organization_id`,
)

/** $1: organization, $2: rows as text. */
export const insertMovedFollowersSql = statement(
  'insert_moved_followers',
  `insert into followers select r.* from unnest($2::followers[]) r where r.organization_id = $1`,
)

/** $1: organization. Nobody works for the followers that have just arrived. */
export const freeFollowersSql = statement(
  'free_followers',
  'update followers set owner = null, leased_until = null where organization_id = $1',
)

export const readCellNameSql = statement('read_cell_name', 'select name from this_cell')

/** $1: name. Names a database that has no name yet. */
export const insertCellNameSql = statement(
  'insert_cell_name',
  'insert into this_cell (name) values ($1) on conflict do nothing',
)

export const countOrganizationsSql = statement(
  'count_organizations',
  'select count(*)::integer as organizations from organizations',
)

export const readMigrationNamesSql = statement('read_migration_names', 'select name from migrations order by id')
