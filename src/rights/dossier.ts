import { definitionsOf } from '../bulk/export.ts'
import { closeAtAbort } from '../db/snapshot.ts'
import { openExportedSnapshot } from '../entities/read/exported-snapshot.ts'
import { waitForClientSql } from '../entities/read/read-sql.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { acceptedLanguage, pageLanguageOf } from '../organizations/page-language.ts'
import { readSettings } from '../organizations/settings.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { pageHeaders } from '../route/page-headers.ts'
import { personAddresses } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { type Route, route } from '../route/route.ts'
import { requireScope, type Scope } from '../route/scopes.ts'
import { Type } from '../values/json-schema.ts'
import { createPagePrinter, type DossierPrinter, dossierPolicy } from './dossier-page/page.ts'
import { type DossierQuery, dossierLine, dossierQuery, type LineType } from './dossier-schema.ts'
import { type DossierSource, dossierSections, readPerson } from './dossier-sections.ts'
import { readOtherHolders, readSubject } from './subject.ts'

/** The media type of the page. */
const pageType = 'text/html'
/**
 * The header with the internal identifiers of the other holders. The page does not show them, because it is for this
 * person only.
 */
const holdersHeader = 'Kith-Other-Holders'

/** The endpoints of a person's dossier, by external and by internal identifier. */
export const dossierEndpoints = (): Route[] =>
  personAddresses.map(({ path, params, suffix, by }) =>
    route<DossierQuery>({
      method: 'GET',
      path: `${path}/dossier`,
      params,
      scope: 'exports:read',
      tag: 'People',
      operationId: `getDossier${suffix}`,
      summary: `Read everything that is held about a person${by}`,
      description:
        'Returns one JSON object per line, each with a `type`, as they were at one moment: the profile, the attributes, the consents with ' +
        'their evidence and texts, the relationships in both directions with the linked records, the changes, and what was sent to ' +
        'webhooks. The last line has the type `end` and counts the others, so that a stream that was cut off is noticed. A deleted ' +
        'person has a dossier too, and identifiers of people who were merged lead to that of the survivor. The token also needs the ' +
        'scopes `people:read`, `consents:read`, `changes:read` and `records:read`. With `Accept: text/html` the response is a page for the ' +
        'person, in its language. See docs/rights.md.',
      streams: true,
      query: dossierQuery,
      answer: dossierLine,
      mediaTypes: { 'application/x-ndjson': dossierLine, [pageType]: Type.String({ description: 'The page.' }) },
      successHeaders: {
        [holdersHeader]:
          'Of the page: the internal identifiers of others who had the external identifier, if there are any.',
      },
      securityEvent: 'dossier',
      handle: answerDossier,
    }),
  )

const otherScopes = ['people:read', 'consents:read', 'changes:read', 'records:read'] as const satisfies Scope[]
/** The approximate size of the parts in which the lines are sent. */
const partCharacters = 64 * 1024

/** Streams all data about one person from one snapshot. Throws a Fault of 403 without a scope, of 404 or of 503. */
async function answerDossier(call: Call<DossierQuery>): Promise<HandlerResult> {
  const { context, caller, params, shown, signal, request_id } = call
  const { organization_id } = context
  for (const scope of otherScopes) requireScope(caller, scope)
  const { snapshot: db, close } = await openExportedSnapshot(context.db, organization_id)
  try {
    await db.query(waitForClientSql, [])
    const people = await readSubject({ db, organization_id }, call)
    shown.addAll(peopleStackId, people)
    const definitions = await definitionsOf(context, db, signal)
    const asked = { made_by: caller.subject, request_id, name: params.external_id, shown }
    const source: DossierSource = { db, organization_id, definitions, people, id: people[0]!, ...asked }
    if (call.mediaType !== pageType) return { status: 200, stream: partsFrom(source, linePrinter, close, signal) }
    const [printer, headers] = [await pagePrinterOf(source, call), await pageHeadersOf(source)]
    const contentType = `${pageType}; charset=utf-8`
    return { status: 200, headers, contentType, stream: partsFrom(source, printer, close, signal) }
  } catch (error) {
    await close()
    throw error
  }
}

const linePrinter: DossierPrinter = {
  section: () => ['', ''],
  line: (type, fields) => `{"type":"${type}",${fields.slice(1)}\n`,
  end: lines => `${JSON.stringify({ type: 'end', lines })}\n`,
}

/** Makes the page for the person, in the language of the request, else of the person, else of the organization. */
async function pagePrinterOf(source: DossierSource, { body, acceptLanguage }: Call<DossierQuery>) {
  const person = await readPerson(source)
  const settings = await readSettings(source)
  const wanted = body.language ?? acceptedLanguage(acceptLanguage) ?? pageLanguageOf(person?.language as string | null)
  const types = dossierSections.map(({ type }) => type).filter(type => type !== 'about')
  return createPagePrinter(wanted ?? settings.language ?? 'en', source.definitions, types)
}

async function pageHeadersOf(source: DossierSource) {
  const others = await readOtherHolders(source, source.name, source.id)
  return { ...pageHeaders(dossierPolicy), ...(others.length > 0 && { [holdersHeader]: others.join(', ') }) }
}

/** Prints the lines in parts, and ends with the number of lines of each type. */
async function* partsFrom(
  source: DossierSource,
  printer: DossierPrinter,
  close: () => Promise<void>,
  signal: Signal,
): AsyncGenerator<Buffer> {
  const end = closeAtAbort(source.db, close, signal)
  try {
    // A signal that is already aborted does not call the listener.
    signal.throwIfAborted()
    const lines: Partial<Record<LineType, number>> = {}
    let part = ''
    for (const { type, read } of dossierSections) {
      for await (const fields of read(source)) {
        const count = lines[type] ?? 0
        if (count === 0) part += printer.section(type, false)[0]
        lines[type] = count + 1
        part += printer.line(type, typeof fields === 'string' ? fields : JSON.stringify(fields))
        if (part.length < partCharacters) continue
        yield Buffer.from(part)
        part = ''
      }
      part += lines[type] ? printer.section(type, false)[1] : printer.section(type, true).join('')
    }
    yield Buffer.from(part + printer.end(lines))
  } finally {
    await end()
  }
}
