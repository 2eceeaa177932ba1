import { definitionsOf } from '../bulk/export.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Snapshot } from '../db/snapshot.ts'
import { openExportedSnapshot } from '../entities/read/exported-snapshot.ts'
import { waitForClientSql } from '../entities/read/read-sql.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope, type Scope } from '../route/scopes.ts'
import { type DossierSource, dossierSections } from './dossier-sections.ts'
import { findSubject } from './dossier-sql.ts'

const otherScopes = ['consents:read', 'changes:read', 'records:read'] as const satisfies Scope[]
/** Lines are sent in parts of about this size. */
const partCharacters = 64 * 1024

/** Streams everything that is held about one person, from one snapshot. Throws a Fault: 403 without a scope, 404, 503. */
export async function answerDossier(call: Call): Promise<HandlerResult> {
  const { context, caller, signal, request_id } = call
  for (const scope of otherScopes) requireScope(caller, scope)
  const { snapshot, close } = await openExportedSnapshot(context.db, context.organization_id)
  try {
    const subject = await findDossierSubject(snapshot, call)
    call.shown.addAll(peopleStackId, [subject.id, ...subject.merged_ids])
    const definitions = await definitionsOf(context, snapshot, signal)
    const asked = { made_by: caller.subject, request_id, name: call.params.external_id, shown: call.shown }
    const source = { snapshot, definitions, ...subject, ...asked }
    return { status: 200, stream: partsFrom(source, close, signal) }
  } catch (error) {
    await close()
    throw error
  }
}

async function findDossierSubject(snapshot: Snapshot, { context: { organization_id }, params }: Call) {
  await snapshot.query(waitForClientSql, [])
  const { by, identifier } = personOf(params)
  type Subject = { id: string; merged_ids: string[] }
  const [subject] = await snapshot.query<Subject>(findSubject[by], [organization_id, identifier])
  return subject ?? throwNoPerson()
}

/** Prints the lines in parts, and ends with the number of lines of each type. */
async function* partsFrom(source: DossierSource, close: () => Promise<void>, signal: Signal): AsyncGenerator<Buffer> {
  const cut = () => void source.snapshot.close()
  signal.addEventListener('abort', cut, { once: true })
  try {
    // A signal that aborted earlier does not call the listener again.
    signal.throwIfAborted()
    const lines: Record<string, number> = {}
    let part = ''
    for (const { type, print } of dossierSections)
      for await (const fields of print(source)) {
        lines[type] = (lines[type] ?? 0) + 1
        part += `{"type":"${type}",${fields.slice(1)}\n`
        if (part.length < partCharacters) continue
        yield Buffer.from(part)
        part = ''
      }
    yield Buffer.from(`${part}${JSON.stringify({ type: 'end', lines })}\n`)
  } finally {
    signal.removeEventListener('abort', cut)
    await close()
  }
}
