import { createHash } from 'node:crypto'
import type { Context } from '../db/context.ts'
import { awaitPipelined } from '../db/db.ts'
import { changeDefinitions, type DefinitionCall, throwInvalidField } from '../organizations/change-definitions.ts'
import { currentDefinitions } from '../organizations/definitions.ts'
import type { Signal } from '../process/signal.ts'
import { listPage } from '../route/result.ts'
import { refuse } from '../values/errors.ts'
import { findConsentType } from './consent-types.ts'
import type { ConsentText, ConsentTextBody, TextsQuery } from './schema.ts'
import { insertConsentTextSql, readConsentTextsSql, touchConsentTypeSql } from './sql.ts'

/** The maximum size of a text, in bytes of UTF-8. */
const maxTextBytes = 65_536
/** A page of texts of the maximum size has 1.3 MB. */
const defaultLimit = 20

/** Adds a version to the texts of a consent type. Throws a Fault of 404 or 400. */
export async function addConsentText(call: DefinitionCall, id: number, body: ConsentTextBody): Promise<ConsentText> {
  const { language, text, url = null } = body
  if (Buffer.byteLength(text) > maxTextBytes)
    throwInvalidField('/text', `must be at most ${maxTextBytes} bytes in UTF-8`)
  if (url !== null && !isWebAddress(url)) throwInvalidField('/url', 'must be an http or https URL')
  const sha256 = createHash('sha256').update(text).digest('hex')
  const added = { version: 0, language, text, url, sha256, created_at: '' }
  await changeDefinitions(call, async (current, at, tx) => {
    const before = { text_versions: findConsentType(current, id).text_versions }
    const after = { text_versions: before.text_versions + 1 }
    Object.assign(added, { version: after.text_versions, created_at: at })
    const values = [call.organization_id, id, added.version, language, text, url, sha256, at]
    const store = (version: number) =>
      awaitPipelined([
        tx.query(touchConsentTypeSql, [call.organization_id, id, at, version]),
        tx.query(insertConsentTextSql, values),
      ])
    return [{ subject: 'consent_type', id, operation: 'update', before, after, store }]
  })
  return added
}

const isWebAddress = (text: string) => /^https?:$/.test(URL.parse(text)?.protocol ?? '')

/** Reads one version. Throws a Fault of 404. */
export async function findConsentText(
  context: Context,
  id: number,
  version: number,
  signal: Signal,
): Promise<ConsentText> {
  const [text] = (await listConsentTexts(context, id, { after: version - 1, limit: 1 }, signal)).items
  return text?.version === version ? text : refuse('not_found', 'There is no such text.')
}

/** Lists the texts of a consent type in order of version. Throws a Fault of 404. */
export async function listConsentTexts(
  context: Context,
  id: number,
  { after = 0, limit = defaultLimit }: TextsQuery,
  signal: Signal,
): Promise<{ items: ConsentText[]; has_more: boolean }> {
  const { db, organization_id } = context
  findConsentType(await currentDefinitions(context, signal), id)
  const texts = await db.query<ConsentText>(readConsentTextsSql, [organization_id, id, after, limit + 1], signal)
  return listPage(texts, limit)
}
