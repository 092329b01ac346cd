{{- /* Requests through the Ingress name its host. */ -}}
{{- define "parley.allowedHosts" -}}
{{ list .Values.allowedHosts (ternary .Values.ingress.host "" .Values.ingress.enabled) | compact | join "," }}
{{- end -}}
{{- define "parley.settings" -}}
{{ .Values.settings | default (.Files.Get "parley.toml") }}
{{- end -}}
{{- /* The name contains the hash of the content: a change restarts the pods. */ -}}
{{- define "parley.config" -}}
parley-config-{{ include "parley.settings" . | sha256sum | trunc 10 }}
{{- end -}}
