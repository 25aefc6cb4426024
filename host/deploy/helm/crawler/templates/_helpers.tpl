{{- define "crawler.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "crawler.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "crawler.selector" . }}
{{- end -}}

{{- define "crawler.selector" -}}
app.kubernetes.io/name: crawler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "crawler.domain" -}}
{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{- define "crawler.scheme" -}}
{{ if .Values.tls.secret }}https{{ else }}http{{ end }}
{{- end -}}

{{- /* Refuses values of which the templates would make a cluster that does not start, or that everybody can use. */ -}}
{{- define "crawler.check" -}}
{{- if and (not .Values.tls.secret) (not .Values.tls.insecure) -}}
{{- fail "nodes need TLS: set tls.secret, or tls.insecure=true on a network in which you trust everybody" -}}
{{- end -}}
{{- if and .Values.tls.secret .Values.tls.insecure -}}
{{- fail "tls.insecure and tls.secret contradict each other: unset one of them" -}}
{{- end -}}
{{- if ne (empty .Values.data.accessKey) (empty .Values.data.secretKeySecret) -}}
{{- fail "data.accessKey and data.secretKeySecret come together: set both, or none" -}}
{{- end -}}
{{- if ne (empty .Values.etcd.user) (empty .Values.etcd.passwordSecret) -}}
{{- fail "etcd.user and etcd.passwordSecret come together: set both, or none" -}}
{{- end -}}
{{- if le (int .Values.workers.terminationGracePeriodSeconds) (add 53 (int .Values.workers.drainTimeoutSeconds) | int) -}}
{{- fail "workers.terminationGracePeriodSeconds has to be longer than workers.drainTimeoutSeconds and 53 s together" -}}
{{- end -}}
{{- end -}}

{{- define "crawler.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "crawler.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Variables of a container; the argument has the root, the role and the port of gRPC. Commands within the container
call its own process. */ -}}
{{- define "crawler.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_INDEX
  valueFrom:
    fieldRef:
      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
- name: CRAWLER_MASTER
  value: {{ include "crawler.scheme" .root }}://$(POD_NAME).{{ include "crawler.name" .root }}-{{ .role }}.{{ include "crawler.domain" .root }}:{{ .port }}
{{- if .root.Values.tls.secret }}
- name: CRAWLER_CA
  value: /etc/crawler-tls/ca.crt
- name: CRAWLER_CERTIFICATE
  value: /etc/crawler-tls/tls.crt
- name: CRAWLER_KEY
  value: /etc/crawler-tls/tls.key
{{- end }}
- name: CRAWLER_LOG_FORMAT
  value: json
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "crawler.probes" -}}
startupProbe:
  exec:
    command: [/usr/bin/crawler, node, health]
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: 60
livenessProbe:
  exec:
    command: [/usr/bin/crawler, node, health]
  periodSeconds: 20
  timeoutSeconds: 6
  failureThreshold: 3
readinessProbe:
  exec:
    command: [/usr/bin/crawler, node, health, --joined]
  periodSeconds: 10
  timeoutSeconds: 6
  failureThreshold: 3
{{- end -}}

{{- define "crawler.mounts" -}}
- name: config
  mountPath: /etc/crawler
  readOnly: true
- name: state
  mountPath: /var/lib/crawler
- name: tmp
  mountPath: /tmp
{{- if .Values.tls.secret }}
- name: tls
  mountPath: /etc/crawler-tls
  readOnly: true
{{- end }}
{{- if .Values.etcd.tlsSecret }}
- name: etcd-tls
  mountPath: /etc/crawler-etcd-tls
  readOnly: true
{{- end }}
{{- if .Values.etcd.passwordSecret }}
- name: etcd-password
  mountPath: /etc/crawler-etcd-password
  readOnly: true
{{- end }}
{{- if .Values.data.secretKeySecret }}
- name: data-secret-key
  mountPath: /etc/crawler-data
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "crawler.volumes" -}}
- name: config
  configMap:
    name: {{ include "crawler.name" . }}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
{{- if .Values.tls.secret }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secret }}
    defaultMode: 288
{{- end }}
{{- if .Values.etcd.tlsSecret }}
- name: etcd-tls
  secret:
    secretName: {{ .Values.etcd.tlsSecret }}
    defaultMode: 288
{{- end }}
{{- if .Values.etcd.passwordSecret }}
- name: etcd-password
  secret:
    secretName: {{ .Values.etcd.passwordSecret }}
    defaultMode: 288
{{- end }}
{{- if .Values.data.secretKeySecret }}
- name: data-secret-key
  secret:
    secretName: {{ .Values.data.secretKeySecret }}
    defaultMode: 288
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "crawler.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
