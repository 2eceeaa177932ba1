import type { Erased, Erasure } from '@kith/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useFormats, useMessages } from '../app/language.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { downloadCertificate } from '../person/certificate.tsx'
import { rightsMessages } from '../person/rights-messages.ts'
import { Button } from '../ui/button.tsx'
import { CloseAction, Dialog } from '../ui/dialog.tsx'
import { Badge, EmptyState, Facts, Page } from '../ui/page.tsx'
import { PagedList } from '../ui/paged-list.tsx'
import { ColumnTable } from '../ui/table.tsx'
import { messages } from './messages.ts'
import { PlacesLeft } from './places-left.tsx'
import { erasuresQuery } from './queries.ts'

/**
 * The page of the erasures: their reasons, authors and times, the certificates, and the places that kith did not reach.
 */
export function ErasuresPage() {
  const texts = useMessages(messages)
  const erasures = useInfiniteQuery(erasuresQuery)
  const [shown, setShown] = useState<Erasure>()
  return (
    <Page title={texts.title} subtitle={texts.subtitle}>
      <PagedList
        query={erasures}
        none={<EmptyState title={texts.none}>{texts.noneAdvice}</EmptyState>}
        more={texts.more}
      >
        {rows => <ErasureTable rows={rows} onShow={setShown} />}
      </PagedList>
      {shown && <ErasureDialog erasure={shown} onClose={() => setShown(undefined)} />}
    </Page>
  )
}

function ErasureTable({ rows, onShow }: { rows: Erasure[]; onShow: (erasure: Erasure) => void }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  return (
    <ColumnTable
      hasCards
      label={texts.title}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        [texts.when, ({ at }) => formats.exactTime(at)],
        [texts.reason, ({ reason }) => reason, 'name'],
        [texts.who, ({ actor }) => actor],
        [texts.person, ({ person_id }) => <EntityLink owner="people" id={person_id} externalId={null} />],
        [
          texts.certificate,
          ({ id, person_id, certificate }) =>
            certificate === null ? (
              <Badge kind="caution">{texts.underWay}</Badge>
            ) : (
              <Button
                aria-label={texts.downloadOf(formats.number(id))}
                onPress={() => downloadCertificate(person_id, certificate)}
              >
                {texts.download}
              </Button>
            ),
          'action',
        ],
        [
          texts.details,
          erasure => (
            <Button aria-label={texts.detailsOf(formats.number(erasure.id))} onPress={() => onShow(erasure)}>
              {texts.details}
            </Button>
          ),
          'action',
        ],
      ]}
    />
  )
}

/** The data that an erasure removed and the places that it did not reach, from its certificate. */
function ErasureDialog({ erasure, onClose }: { erasure: Erasure; onClose: () => void }) {
  const texts = useMessages(messages)
  const { records: recordsOfPerson } = useMessages(rightsMessages)
  const formats = useFormats()
  const { id, at, reason, actor, records, certificate } = erasure
  return (
    <Dialog title={texts.erasure(formats.number(id))} onClose={onClose} size="wide" hasDraft={false}>
      <Facts
        facts={[
          [texts.reason, reason],
          [texts.who, actor],
          [texts.when, formats.exactTime(at)],
          [recordsOfPerson, texts.recordsOf[records]],
        ]}
      />
      {certificate === null ? <p>{texts.underWayAdvice}</p> : <CertificateFacts certificate={certificate} />}
      <CloseAction onClose={onClose} />
    </Dialog>
  )
}

function CertificateFacts({ certificate }: { certificate: string }) {
  const texts = useMessages(messages)
  const { tables, rows } = useMessages(rightsMessages)
  const formats = useFormats()
  const { removed, record_ids, merged_ids, not_removed } = factsOf(certificate)
  const names: Record<string, string> = tables
  return (
    <>
      <h3>{texts.removed}</h3>
      <Facts
        facts={[
          [texts.people, formats.number(1 + merged_ids.length)],
          [texts.erasedRecords, formats.number(record_ids.length)],
          ...Object.entries(removed)
            .filter(([table, count]) => count > 0 && table in names)
            .map(([table, count]) => [names[table], rows(count, formats.number(count))] as [string, string]),
        ]}
      />
      <h3>{texts.notReached}</h3>
      <PlacesLeft places={not_removed} />
    </>
  )
}

/** The facts of a certificate about its erasure. The page does not verify the signature: `kith verify` does. */
export function factsOf(certificate: string): Erased['erasure'] {
  const payload = certificate.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/')
  const bytes = Uint8Array.from(atob(payload), character => character.charCodeAt(0))
  return (JSON.parse(new TextDecoder().decode(bytes)) as { erasure: Erased['erasure'] }).erasure
}
