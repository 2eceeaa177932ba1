import { definitionsOf } from '../bulk/export.ts'
import { throwNoPerson } from '../consents/history.ts'
import type { Snapshot } from '../db/snapshot.ts'
import { openExportedSnapshot } from '../entities/read/exported-snapshot.ts'
import { waitForClientSql } from '../entities/read/read-sql.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import { acceptedLanguage, pageLanguageOf } from '../organizations/page-language.ts'
import { readSettings } from '../organizations/settings.ts'
import type { Signal } from '../process/signal.ts'
import type { Call } from '../route/call.ts'
import { pageHeaders } from '../route/page-headers.ts'
import { personOf } from '../route/person-addresses.ts'
import type { HandlerResult } from '../route/result.ts'
import { requireScope, type Scope } from '../route/scopes.ts'
import { createPagePrinter, dossierPolicy, type PageLine } from './dossier-page/page.ts'
import type { SectionType } from './dossier-page/words.ts'
import type { DossierQuery } from './dossier-schema.ts'
import { type DossierSource, dossierSections, readPerson } from './dossier-sections.ts'
import { findSubject } from './dossier-sql.ts'
import { readOtherHolders } from './other-holders.ts'

/** The media type of the page. */
export const pageType = 'text/html'

const otherScopes = ['consents:read', 'changes:read', 'records:read'] as const satisfies Scope[]
/** Lines are sent in parts of about this size. */
const partCharacters = 64 * 1024

/** Prints the lines of a dossier, each of a type with its other members as JSON, and what follows the last one. */
type Printer = { line(type: string, fields: string): string; end(lines: Record<string, number>): string }

/** The header with the internal identifiers of the other holders, who are no business of the person that the page is for. */
export const holdersHeader = 'Kith-Other-Holders'

/** Streams everything that is held about one person, from one snapshot. Throws a Fault: 403 without a scope, 404, 503. */
export async function answerDossier(call: Call<DossierQuery>): Promise<HandlerResult> {
  const { context, caller, signal, request_id } = call
  for (const scope of otherScopes) requireScope(caller, scope)
  const { snapshot, close } = await openExportedSnapshot(context.db, context.organization_id)
  try {
    const subject = await findDossierSubject(snapshot, call)
    call.shown.addAll(peopleStackId, [subject.id, ...subject.merged_ids])
    const definitions = await definitionsOf(context, snapshot, signal)
    const asked = { made_by: caller.subject, request_id, name: call.params.external_id, shown: call.shown }
    const source = { snapshot, definitions, ...subject, ...asked }
    if (call.mediaType !== pageType) return { status: 200, stream: partsFrom(source, linePrinter, close, signal) }
    const [printer, headers] = [await pagePrinterOf(source, call), await pageHeadersOf(source)]
    const contentType = `${pageType}; charset=utf-8`
    return { status: 200, headers, contentType, stream: partsFrom(source, printer, close, signal) }
  } catch (error) {
    await close()
    throw error
  }
}

const linePrinter: Printer = {
  line: (type, fields) => `{"type":"${type}",${fields.slice(1)}\n`,
  end: lines => `${JSON.stringify({ type: 'end', lines })}\n`,
}

/** The page for the person, in the language that the request asks for, else that of the person or of the organization. */
async function pagePrinterOf(source: DossierSource, { body, acceptLanguage }: Call<DossierQuery>): Promise<Printer> {
  const { snapshot, definitions } = source
  const person = await readPerson(source)
  const settings = await readSettings({ db: snapshot, organization_id: definitions.organization_id })
  const wanted = body.language ?? acceptedLanguage(acceptLanguage) ?? pageLanguageOf(person?.language as string | null)
  const types = dossierSections.map(({ type }) => type).filter(type => type !== 'about') as SectionType[]
  const { line, end } = createPagePrinter(wanted ?? settings.language ?? 'en', definitions, types)
  return { line: (type, fields) => line({ type, ...JSON.parse(fields) } as PageLine), end }
}

async function pageHeadersOf({ snapshot, definitions, id, name }: DossierSource) {
  const reading = { db: snapshot, organization_id: definitions.organization_id }
  const others = await readOtherHolders(reading, { name, person_id: id })
  return { ...pageHeaders(dossierPolicy), ...(others.length > 0 && { [holdersHeader]: others.join(', ') }) }
}

async function findDossierSubject(snapshot: Snapshot, { context: { organization_id }, params }: Call<DossierQuery>) {
  await snapshot.query(waitForClientSql, [])
  const { by, identifier } = personOf(params)
  type Subject = { id: string; merged_ids: string[] }
  const [subject] = await snapshot.query<Subject>(findSubject[by], [organization_id, identifier])
  return subject ?? throwNoPerson()
}

/** Prints the lines in parts, and ends with the number of lines of each type. */
async function* partsFrom(
  source: DossierSource,
  printer: Printer,
  close: () => Promise<void>,
  signal: Signal,
): AsyncGenerator<Buffer> {
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
        part += printer.line(type, fields)
        if (part.length < partCharacters) continue
        yield Buffer.from(part)
        part = ''
      }
    yield Buffer.from(part + printer.end(lines))
  } finally {
    signal.removeEventListener('abort', cut)
    await close()
  }
}
